"""Finding plugins and reading their files; none of their code runs here."""

"""Rules of filesystem plugins beyond registration: what each operation must do."""

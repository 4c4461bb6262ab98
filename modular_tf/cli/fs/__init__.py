"""The verbs that work with files: `modular-tf fs ls`, `cat`, `cp` and so on."""

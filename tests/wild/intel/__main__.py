"""Runs the comparisons of modules, of them all or some: python FOLDER PLUGIN MODULE,... [OP...]"""

from subject import main

main()

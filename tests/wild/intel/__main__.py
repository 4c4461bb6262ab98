"""Runs the comparisons of some modules: python FOLDER PLUGIN MODULE..."""

from subject import main

main()

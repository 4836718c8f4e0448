"""Attacks by tenants, plugins and the wire: after each, the program runs, decides soon, and has not grown.

Each file is one kind of attack. A test fails without its mend; the short form is part of `make test`, longer ones are
marked `full`. `survivor.py` has the question that all of them end with: is the program unharmed?
"""

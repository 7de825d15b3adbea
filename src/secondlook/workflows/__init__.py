"""What a program or a verb calls: one module per pipeline, from files to files.

A workflow takes paths as `str | Path`, has defaults, reports `progress`, returns an object, and
never prints. Its errors name arguments, not options of the command line.
"""

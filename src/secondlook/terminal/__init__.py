"""How the command line looks to a person: bars, help, and messages where a verb ends early."""

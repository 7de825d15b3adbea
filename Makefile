.PHONY: check lint types imports test format

check: lint types imports test  ## what CI runs, in an environment that is already there

lint:
	ruff format --check .
	ruff check .

types:
	mypy

imports:
	PYTHONPATH=src lint-imports

test:
	pytest

format:
	ruff format .
	ruff check --fix .

.PHONY: check quick lint types imports docs test format package

# Two processes of one thread; a file of tests stays in one of them, and so does all that needs a cluster.
pytest = OMP_NUM_THREADS=1 pytest -n 2 --dist loadfile --no-loadscope-reorder

check: lint types imports docs test  ## what CI runs, in an environment that is already there

quick: lint types imports docs  ## the same without real weights, clusters and browsers
	$(pytest) -m "not slow and not real"

lint:
	ruff format --check .
	ruff check .

types:
	mypy

imports:
	PYTHONPATH=src lint-imports

docs:  ## the site, into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src mkdocs build --strict --quiet

test:
	$(pytest) --durations 60 --durations-min 2

package:  ## wheel and sdist, checked, with a bill of materials; needs `pip install --group release`
	python release/check.py dist

format:
	ruff format .
	ruff check --fix .

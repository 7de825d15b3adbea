from secondlook.evaluate.measures import DEFAULT_MEASURES, Evaluation, evaluate

__all__ = ["DEFAULT_MEASURES", "Evaluation", "evaluate"]

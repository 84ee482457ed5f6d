"""Commands on rows as data and pure functions: `plan.py` has the types, each other module decides a family of verbs."""

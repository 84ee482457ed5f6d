"""Commands by steps: generators of operations on stores, which `kvref.engine.dispatch` chooses for a command.

Each module has the verbs that share their code.
"""

"""The verbs over mapped tables, one module for those that share their code; `kvref.engine.dispatch` calls them."""

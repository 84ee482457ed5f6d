"""Rules of single items: what deciders, steps and the memory cache have in common, without operations of a store."""

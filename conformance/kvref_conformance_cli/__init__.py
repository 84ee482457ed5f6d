"""The commands that start the judge, `kvref_conformance`; no other command needs it."""

"""After a failure: is the endpoint still up, does the failure repeat, and a file that replays it."""

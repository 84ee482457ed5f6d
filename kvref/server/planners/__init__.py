"""What plans the input of a connection besides the lines of `kvref.server.planner`."""

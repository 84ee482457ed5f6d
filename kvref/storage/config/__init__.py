"""The configuration schema of the plugin: containers, policies, options, and column types to codecs."""

"""The command line. The only place that prints, exits and reads the environment."""

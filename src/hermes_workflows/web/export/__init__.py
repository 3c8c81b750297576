"""The pages as files: what `dashboard export` writes, to be read without a server."""

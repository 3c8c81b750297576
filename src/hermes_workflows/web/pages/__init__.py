"""One module a page: its routes, its handlers and its view model; templates have no logic."""

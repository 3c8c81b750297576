"""`python -m hermes_workflows` is the command line."""

from .cli.main import main

raise SystemExit(main())

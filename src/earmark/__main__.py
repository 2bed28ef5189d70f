"""`python -m earmark` is the command line."""

from earmark.cli import main

raise SystemExit(main())

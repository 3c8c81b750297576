"""The dashboard: pages over `Workspace`, for people who never open a terminal."""

"""The tools of agents: the Model Context Protocol over one route, with a user's token."""

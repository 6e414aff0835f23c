"""One address for many users: their MCP server and their web page, scoped by their tokens. Floor 7."""

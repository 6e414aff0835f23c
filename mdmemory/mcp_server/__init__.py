"""A memory as an MCP server: tools, resources, prompts and news, over stdin and stdout or HTTP. Needs the extra `mcp`."""

"""RSTool over MCP: one server with five tools, at `/mcp` over streamable HTTP and as `cairn mcp` over stdio."""

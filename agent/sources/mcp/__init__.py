"""Any MCP server as a source: one of its tools is searched, and what it gives becomes passages."""

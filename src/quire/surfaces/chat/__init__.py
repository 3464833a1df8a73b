"""Chats as ways in: MCP for people's assistants, A2A for other agents."""

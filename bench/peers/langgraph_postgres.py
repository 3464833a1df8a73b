"""LangGraph with its PostgreSQL checkpointer."""

from _adapter import serve
from _langgraph import LangGraphAdapter

if __name__ == "__main__":
    serve(LangGraphAdapter())

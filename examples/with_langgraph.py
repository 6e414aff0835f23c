"""A graph of LangGraph with a memory: python examples/with_langgraph.py MODEL FOLDER MESSAGE ..."""

import sys
import uuid

from langchain.chat_models import init_chat_model
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from mdmemory.adapters import bridge
from mdmemory.adapters.langgraph import memory_nodes


def main(name: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    model = init_chat_model(f"openai:{name}")
    thread = {"configurable": {"thread_id": uuid.uuid4().hex}}
    with bridge.open_memory(folder) as memory:  # without an event loop; with one, mdmemory.open_memory and ainvoke
        nodes = memory_nodes(memory)
        graph = StateGraph(MessagesState)
        graph.add_node("retrieve", nodes.retrieve)
        graph.add_node("answer", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.add_node("save", nodes.save)
        graph.add_edge(START, "retrieve")
        graph.add_edge("retrieve", "answer")
        graph.add_edge("answer", "save")
        chat = graph.compile(checkpointer=InMemorySaver())
        for text in texts:
            state = chat.invoke({"messages": [{"role": "user", "content": text}]}, thread)
            print(state["messages"][-1].text)


main(*sys.argv[1:])

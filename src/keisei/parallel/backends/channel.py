"""The worker's end of its pipe, and the loop that carries out orders. Threads and processes share it."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection

from keisei.parallel.arena import Arena
from keisei.parallel.messages import (
    ANSWER,
    PIECE_BYTES,
    Failed,
    NeedState,
    Order,
    OrderKind,
    Question,
    Ready,
    Reply,
    StatePiece,
    encode_reply,
    piece_content,
)
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader
from keisei.parallel.worker.self_play_worker import SelfPlayWorker, WorkerStopped


class Channel:
    """Connects a worker to the manager through a pipe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._early: deque[bytes] = deque()
        """Orders that arrived while the worker waited for another message."""

    def receive(self) -> Order:
        return Order.decode(self._early.popleft() if self._early else self._connection.recv_bytes())

    def send(self, reply: Reply) -> None:
        self._connection.send_bytes(encode_reply(reply))

    def ask(self, question: Question) -> None:
        self.send(question)
        while (message := self._connection.recv_bytes()) != ANSWER:
            self._keep(message)

    def fetch_state(self, table: int) -> bytes:
        state = b""
        while True:
            self.send(NeedState(table, len(state)))
            piece = self._next_piece()
            state += piece
            if len(piece) < PIECE_BYTES:
                return state

    def deliver_piece(self, piece: StatePiece) -> None:
        self.send(piece)

    def _next_piece(self) -> bytes:
        while (piece := piece_content(message := self._connection.recv_bytes())) is None:
            self._keep(message)
        return piece

    def _keep(self, message: bytes) -> None:
        if Order.decode(message).kind is OrderKind.STOP:
            raise WorkerStopped
        self._early.append(message)


def serve(plan: WorkerPlan, arena: Arena, weights: WeightReader | None, connection: Connection) -> None:
    """Carries out orders until the manager says stop or has ended. An error is sent to the manager and ends the
    worker."""
    channel = Channel(connection)
    try:
        worker = SelfPlayWorker(plan, arena, weights, channel)
        channel.send(Ready())
        while (order := channel.receive()).kind is not OrderKind.STOP:
            record = worker.obey(order)
            if record is not None:
                channel.send(record)
    except (EOFError, ConnectionError, WorkerStopped):
        return  # the manager has ended or wants the worker to stop, so there is nothing to report
    except Exception as error:
        with suppress(OSError):  # the manager has closed the pipe, so nobody can read this
            channel.send(Failed.of(error))

"""Builds the gRPC servicer of the memory service."""

from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.byte_budget import ByteBudget
from services.common.clock import Clock
from services.common.disk import DiskReserve
from services.common.settings import Memory
from services.memory.jobs.job_runner import JobRunner
from services.memory.jobs.stores import Stores
from services.memory.jobs.task_client import TaskClient
from services.memory.locks.locks import MemoryLocks
from services.memory.management import MemoryManagement
from services.memory.metrics import MemoryMetrics
from services.memory.servicer import MemoryServicer
from services.memory.turns.context import ContextReader
from services.memory.turns.turn_service import TurnService


def open_servicer(
    settings: Memory,
    database: AsyncEngine,
    clock: Clock,
    stores: Stores,
    locks: MemoryLocks,
    jobs: JobRunner,
    tasks: TaskClient,
    metrics: MemoryMetrics,
    reserve: DiskReserve,
    budget: ByteBudget,
) -> MemoryServicer:
    """Return the servicer; it shares its arguments with the background work of the process."""
    contexts = ContextReader(stores, tasks, settings, metrics)
    turns = TurnService(stores, locks, contexts, jobs, settings, clock, metrics, reserve, budget)
    management = MemoryManagement(database, stores, locks, contexts.embed_question, budget)
    return MemoryServicer(turns, management)

"""Which processes of a data folder are alive."""

import asyncio
import sys
from pathlib import Path

from services.common.process.registry import FOLDER, ProcessRegistry

_LIVES = """
import sys
from pathlib import Path
from services.common.process.registry import ProcessRegistry
print(ProcessRegistry.register(Path(sys.argv[1])).name, flush=True)
sys.stdin.read()
"""


class Witness:
    """A process that takes note of the dead."""

    def __init__(self, folder: Path) -> None:
        self.processes = ProcessRegistry.register(folder)
        self.dead: list[str] = []
        self.processes.on_death.append(self._note)

    async def _note(self, name: str) -> None:
        self.dead.append(name)


async def test_only_a_killed_process_is_found_dead_and_once(tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _LIVES, str(tmp_path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    name = (await process.stdout.readline()).decode().strip()
    await witness.processes.reap_dead()
    assert witness.dead == []
    process.kill()
    await process.communicate()
    await witness.processes.reap_dead()
    await witness.processes.reap_dead()
    assert witness.dead == [name]
    witness.processes.unregister()
    assert list((tmp_path / FOLDER).iterdir()) == []


async def test_one_that_leaves_is_not_found_dead(tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    ProcessRegistry.register(tmp_path).unregister()
    await witness.processes.reap_dead()
    assert witness.dead == []
    witness.processes.unregister()


async def test_a_dead_process_is_found_again_if_its_cleanup_failed(tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    dead = tmp_path / FOLDER / "dead"
    dead.touch()

    async def fail(name: str) -> None:
        raise RuntimeError

    witness.processes.on_death.append(fail)
    for _ in range(2):
        try:
            await witness.processes.reap_dead()
        except RuntimeError:
            continue
    assert witness.dead == ["dead", "dead"]
    witness.processes.on_death.remove(fail)
    await witness.processes.reap_dead()
    assert not dead.exists()
    witness.processes.unregister()

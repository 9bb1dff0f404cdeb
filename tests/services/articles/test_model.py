"""Random edits of two users through two processes, compared with a list of blocks."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from services.articles import snapshots
from services.common.errors import GatewayError
from tests.services.articles.editor_services import Client, EditorServices, stored_and_replayed

_STEPS = 60


@dataclass
class Model:
    """The expected document: id and text of each block, and the number of edits."""

    blocks: list[tuple[str, str]] = field(default_factory=list)
    revision: int = 0
    ever: set[str] = field(default_factory=set)


async def step(client: Client, session_id: str, model: Model, chance: random.Random) -> None:
    """Do one edit, or one that is refused, and the same to the model."""
    kind = chance.choice(["insert", "insert", "delete", "append", "replace", "refused"])
    at = chance.randrange(len(model.blocks)) if model.blocks else None
    word = "".join(chance.choices("abcdef", k=5))
    if kind == "insert" or at is None:
        place = chance.randint(0, len(model.blocks))
        words = [word] * chance.randint(1, 4)
        done = await client.insert(session_id, *words, path=(place,), if_revision=model.revision)
        assert not model.ever & set(done.ids)
        model.ever |= set(done.ids)
        model.blocks[place:place] = zip(done.ids, words, strict=True)
    elif kind == "refused":
        with pytest.raises(GatewayError):
            await client.insert(session_id, word, path=(len(model.blocks) + 1,))
        return
    else:
        done = await change(client, session_id, kind, model, at, word)
    model.revision += 1
    assert done.revision == model.revision


async def change(
    client: Client, session_id: str, kind: str, model: Model, at: int, word: str
) -> Any:
    """Change or delete the block at a place."""
    block_id, text = model.blocks[at]
    if kind == "delete":
        del model.blocks[at]
        return await client.edit(session_id, "delete_block", block_id=block_id)
    if kind == "append":
        model.blocks[at] = block_id, text + word
        return await client.edit(session_id, "append_text", block_id=block_id, text=word)
    model.blocks[at] = block_id, word
    fields = {"children": word}
    return await client.edit(session_id, "replace_text", block_id=block_id, fields=fields)


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("seed", range(2))
async def test_any_sequence_of_edits_leaves_what_the_model_has(
    editors: EditorServices, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOT_EVERY", 7)
    chance = random.Random(seed)
    await editors.start()
    group = await editors.groups.create("lab", "user_ada")
    await editors.groups.add(group, "user_bob")
    article = await editors.client("ada").create(group_id=group)
    users = [editors.client("ada", 0), editors.client("bob", 1)]
    sessions = [(await user.open(article.id)).session_id for user in users]
    model = Model()
    for _ in range(_STEPS):
        who = chance.randrange(2)
        await step(users[who], sessions[who], model, chance)
        reader = chance.randrange(2)
        read = await users[reader].read(sessions[reader])
        assert [(block.id, block.text) for block in read.blocks] == model.blocks
        assert read.revision == model.revision
        assert read.text == "\n\n".join(text for _, text in model.blocks)
    stored, replayed = await stored_and_replayed(editors.engine, article.id)
    assert stored == replayed

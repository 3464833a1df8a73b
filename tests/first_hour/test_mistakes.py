"""Mistakes in a workflow are named by `quire check`, by the doctor and when a process starts, with the line."""

from __future__ import annotations

from tests.first_hour.newcomer import Newcomer

HEAD = '''"""Orders."""

from pydantic import BaseModel

from quire import Run, Workflow, workflow


class Order(BaseModel):
    name: str = ""


@workflow
async def kid(run: Run[Order]) -> str:
    return run.data.name

'''


def test_wrong_calls_of_run_are_named_with_their_lines(newcomer: Newcomer) -> None:
    for body, said in (
        ('return await run.child("kid", {})', "run.child takes a workflow, not 'kid'; give the Workflow itself"),
        ("return await run.child(kid)", "run.child(): missing a required argument: 'data'"),
        ("return await run.chidl(kid, run.data)", "run has no 'chidl'; did you mean 'child'?"),
        ("run.child(kid, run.data)\n    return ''", "run.child(…) is never awaited, so it does nothing; write 'await"),
        ("return await run.ask('ok?', edits=['x'])", "run.ask(): got an unexpected keyword argument 'edits'"),
    ):
        newcomer.write("flows.py", f"{HEAD}\n@workflow\nasync def parent(run: Run[Order]) -> str:\n    {body}\n")
        newcomer.write("quire.toml", 'flows = ["flows.py"]\n')
        newcomer.tells("quire check", f"parent: step 'parent', line 19: {said}", code=2)
        newcomer.tells(
            "quire worker --until-idle", "workflow 'parent' cannot run: step 'parent', line 19:", said, code=2
        )


def test_what_a_child_is_given_is_checked_like_every_start(newcomer: Newcomer) -> None:
    newcomer.write(
        "flows.py",
        f"{HEAD}\n@workflow\nasync def parent(run: Run[Order]) -> str:\n"
        "    return await run.child(kid, {'nam': 'x'})\n",
    )
    newcomer.write("quire.toml", 'flows = ["flows.py"]\n')
    newcomer.type("quire start parent --id p")
    newcomer.tells("quire worker --until-idle", "nam: there is no such field; did you mean 'name'?")
    newcomer.tells("quire why p", "the data of run.child(kid) does not fit workflow 'kid': nam: there is no such field")
    newcomer.edit("flows.py", "'nam'", "'name'")
    newcomer.type("quire retry p && quire worker --until-idle")
    newcomer.tells("quire show p", "DONE", '"x"')


def test_a_workflow_that_nobody_lists_is_named(newcomer: Newcomer) -> None:
    newcomer.write("kids.py", HEAD)
    newcomer.write(
        "flows.py",
        "import kids\nfrom quire import Run, workflow\n\n\n@workflow\nasync def parent(run: Run[kids.Order]) -> str:\n"
        "    return await run.child(kids.kid, run.data)\n",
    )
    newcomer.write("quire.toml", 'flows = ["flows.py"]\n')
    said = "step 'parent' of 'parent' starts children of workflow 'kid' (run.child), which is not listed here"
    newcomer.tells("quire check", said)
    newcomer.type("quire start parent --id p")
    newcomer.tells("quire worker --until-idle", said)
    newcomer.tells("quire doctor", said)
    newcomer.write("quire.toml", 'flows = ["flows.py", "kids.py"]\n')
    assert "not listed" not in newcomer.type("quire check && quire worker --until-idle && quire doctor")
    newcomer.tells("quire show p", "DONE")


def test_a_renamed_step_at_which_records_wait_is_named(newcomer: Newcomer) -> None:
    newcomer.type("quire init && quire start greet name=Ann --id hello && quire worker --until-idle")
    newcomer.edit("flows.py", "async def review(", "async def look_over(")
    newcomer.edit("flows.py", '@greet.step(then="review")', '@greet.step(then="look_over")')
    said = "1 open record stands at step 'review', which workflow 'greet' does not have"
    newcomer.tells("quire check", said, "if the step was renamed, write was='review' at the new one", code=2)
    newcomer.tells("quire doctor", said, "1 problem found", code=3)
    newcomer.tells("quire worker --until-idle", said)

    newcomer.edit(
        "flows.py", '@greet.step(then=["deliver", "drop"])', '@greet.step(then=["deliver", "drop"], was="review")'
    )
    newcomer.tells("quire check", "greet is well")
    newcomer.tells("quire approve hello", "answered")
    newcomer.type("quire worker --until-idle")
    newcomer.tells("quire show hello", "DONE")


def test_a_result_of_another_type_is_named_without_lines_of_libraries(newcomer: Newcomer) -> None:
    newcomer.write("flows.py", HEAD.replace("return run.data.name", "return 5"))
    newcomer.write("quire.toml", 'flows = ["flows.py"]\n')
    newcomer.type("quire start kid --id k")
    told = newcomer.tells(
        "quire worker --until-idle", "it is declared as str, but: Input should be a valid string (it is 5)"
    )
    assert "pydantic" not in told


def test_a_flow_file_that_cannot_be_loaded_is_a_problem_also_before_there_is_a_ledger(newcomer: Newcomer) -> None:
    newcomer.write("quire.toml", 'flows = ["flows.py"]\n')
    newcomer.write("flows.py", "from quire import Retry\n\nagain = Retry(2, wait='1s')\n")
    said = "line 3: TypeError: Retry.__init__() got an unexpected keyword argument 'wait'"
    newcomer.tells("quire doctor", "no worker can start:", said, "1 problem found", code=3)
    newcomer.tells("quire worker --until-idle", said, code=2)


def test_what_an_effect_returned_in_vain_is_named_in_plain_words(newcomer: Newcomer) -> None:
    newcomer.write(
        "flows.py",
        f"{HEAD}\nfrom quire import Act, effect\n\n\n@effect\nasync def send(act: Act) -> str:\n    return object()\n"
        "\n\n@workflow\nasync def mail(run: Run[Order]) -> str:\n    return await run.once(send)\n",
    )
    newcomer.write("quire.toml", 'flows = ["flows.py"]\n')
    newcomer.type("quire start mail --id m && quire worker --until-idle")
    said = newcomer.tells("quire show m", "it is declared as str, but: Input should be a valid string (it is <object")
    assert "pydantic" not in said and "effect.unfit" not in said
    newcomer.type("quire resolve m --happened --value '\"id\"' && quire worker --until-idle")
    newcomer.tells("quire show m", "DONE", '"id"')

"""The command script."""


def test_what_is_to_be_called_can_be_pasted(run, batch_file, plan_file):
    out = plan_file.parent / "go on.sh"
    outcome = run("script", batch_file, plan_file, out)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"Script written to {out}. Usage: bash '{out}' HOOKS\n"
    assert out.exists()

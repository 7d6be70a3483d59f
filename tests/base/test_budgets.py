from mccompile.base.budgets import budgets, limited


def test_other_budgets_last_as_long_as_the_context() -> None:
    before = budgets()
    with limited(nodes=3) as inside:
        assert budgets() == inside and inside.nodes == 3 and inside.depth == before.depth
        with limited(depth=2):
            assert (budgets().nodes, budgets().depth) == (3, 2)
    assert budgets() == before

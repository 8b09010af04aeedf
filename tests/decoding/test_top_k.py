import pytest
import torch

from regard.decoding.top_k import LAYERS, MANY, top_k


@pytest.mark.parametrize("n_columns", [8000, 8001, 8007, 1000, 5])
@pytest.mark.parametrize("k", [1, 10])
def test_they_are_those_of_topk(n_columns, k):
    k = min(k, n_columns)
    values = torch.randn(MANY // n_columns + 1, n_columns, generator=torch.Generator().manual_seed(2))
    found, places = top_k(values, k)
    assert torch.equal(found, values.topk(k).values)
    assert torch.equal(places, values.topk(k).indices)


def test_among_equal_numbers_it_takes_the_right_number_of_each():
    generator = torch.Generator().manual_seed(2)
    values = torch.randint(0, 9, (300, 1003), generator=generator).float()
    values[values < 3] = -torch.inf
    values[:100, 20:] = -torch.inf  # fewer possible ones than are asked for
    assert values.numel() > MANY
    found, places = top_k(values, 40)
    assert torch.equal(found, values.topk(40).values)
    assert torch.equal(values.gather(1, places), found)
    assert all(len(set(row)) == 40 for row in places.tolist())


@pytest.mark.parametrize("column", [0, 1, 8 * 999, 8 * 1000 - 1, 8000, 8006])
def test_the_largest_may_stand_anywhere(column):
    values = torch.zeros(MANY // 8000 + 1, 8007)
    assert LAYERS == 8
    values[:, column] = 1.0
    _, places = top_k(values, 3)
    assert places[:, 0].tolist() == [column] * len(values)


def test_a_batch_of_numbers_that_are_none_keeps_to_its_shape():
    values = torch.full((40, 8000), torch.nan)
    found, places = top_k(values, 10)
    assert found.isnan().all()
    assert places.shape == (40, 10)

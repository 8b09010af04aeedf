from regard.decoding.beam_events import BeamNode


def test_a_path_leads_from_the_first_token_to_the_node():
    first = BeamNode(0, 0, None, 5, -0.5, -0.5)
    second = BeamNode(1, 0, first, 6, -0.25, -0.75)
    assert second.path() == [first, second]
    assert first.path() == [first]

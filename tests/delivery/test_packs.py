"""Q-01: what travels together, and that every promise is as on the API."""

from tests.delivery.post import Post
from tests.delivery.scene import MINUTE, NINE, Scene


def test_q01_what_is_due_in_the_same_second_travels_together(each_scene: Scene) -> None:
    for number in range(30):
        each_scene.put(f"k{number:02}", cron="0 9 * * *")
    post = Post(each_scene)
    report = post.tick(NINE - MINUTE)
    assert (report.claimed, report.handed_on, report.packs) == (30, 30, 2)
    assert post.run_all(NINE - 1) == []
    assert sum(one.succeeded for one in post.run_all(NINE)) == 30
    assert {each_scene.history(f"k{n:02}")[0] for n in range(30)} == {("succeeded", "fired")}

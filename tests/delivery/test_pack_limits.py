"""O-03 in packs: a limit of an action holds for rows without a record too."""

from duetick.domain.schedule import IndexRow, Schedule

from tests.delivery.post import Post
from tests.delivery.scene import MINUTE, NINE, Scene
from tests.delivery.test_packs import DAILY, FIRED, ended


def test_o03_a_limit_of_an_action_holds_in_a_pack_for_rows_without_a_record(
    each_scene: Scene,
) -> None:
    """Only their flow knows what they run."""

    @each_scene.flow.resolver
    def resolve(schedule_id: str, _ctx: object) -> Schedule:
        user_id, _, key = schedule_id.partition("/")
        return Schedule(user_id, key, DAILY, "mail", "send")

    each_scene.store.limits.set("action:mail/send", rate=2, per="hour", now=NINE - MINUTE)
    for number in range(4):
        each_scene.store.index.upsert(IndexRow("ada", f"k{number}", DAILY, None, NINE, "mail"))
    post = Post(each_scene)
    post.tick()
    post.run_all()
    assert ended(each_scene)[FIRED] == 2
    assert len(each_scene.ran) == 2

/**
 * The page: one selection, one trace, and the views of it.
 * @module
 */
import { mountAtlas } from "./atlas.js";
import { mountBanner, mountTop } from "./top.js";
import { mountDetail } from "./detail.js";
import { mountKeyboard } from "./keyboard.js";
import { mountLesson } from "./lesson.js";
import { openSource } from "./source.js";
import { mountStage } from "./stage.js";
import { State } from "./state.js";
import { mountTimeline } from "./timeline.js";
import { Workbench } from "./workbench.js";

const state = new State(location.hash);
const bench = new Workbench(state, await openSource());
mountBanner(bench);
mountTop(bench);
mountAtlas(bench);
mountStage(bench);
mountDetail(bench);
mountTimeline(bench);
mountLesson(bench);
mountKeyboard(bench);
await bench.open();

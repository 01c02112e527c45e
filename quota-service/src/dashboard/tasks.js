// Tasks that wait, and why.

import { address } from "./api.js";
import { badge, h, table } from "./dom.js";
import { count, NONE, number, sentence, time } from "./format.js";
import { Section } from "./section.js";

const COLUMNS = [
  { name: "Task" },
  { name: "Class" },
  { name: "Organization" },
  { name: "GPUs", number: true },
  { name: "Promise", number: true },
  { name: "Waits since" },
  { name: "Expected start" },
  { name: "Why" },
];

/** Median and 90 % of a start; a time beyond the horizon of the forecast is absent. */
function expected(start) {
  if (!start) return NONE;
  if (!start.p50) return "not within 72 h";
  const until = start.p90 ? time(start.p90) : "later than 72 h";
  return h("span", { class: "range", title: "Earlier with 50 %, and with 90 %" }, time(start.p50), " – ", until);
}

function row(task) {
  const gpus = task.gpus_per_pod * task.pods;
  const asked = task.pods > 1 ? `${number(gpus)} (${number(task.pods)} × ${number(task.gpus_per_pod)})` : number(gpus);
  const why = task.detail.waits
    ? h("span", { title: `Code of the reason: ${task.detail.waits.code}` }, sentence(task.detail.waits.detail))
    : "not decided on yet";
  return [
    task.id,
    badge(task.class === "hp" ? "good" : "none", task.class === "hp" ? "HP" : "spot"),
    task.organization,
    asked,
    task.guarantee_hours ? `${task.guarantee_hours} h` : NONE,
    time(task.submitted),
    expected(task.start),
    h("span", { class: "sentence" }, why),
  ];
}

/** The queue of a pool whose tasks are placed here. */
export function tasksSection(pool) {
  return new Section({
    id: "tasks",
    title: "Waiting tasks",
    elsewhere: () => pool.isExternal && "Another scheduler places the tasks of this pool: what waits is in its queue.",
    sources: () => ({
      answer: address("/v1/tasks", { cluster: pool.cluster, gpu_model: pool.gpu_model, status: "waiting", limit: 100 }),
    }),
    render: ({ answer }) => {
      if (answer.tasks.length === 0) return h("p", { class: "quiet" }, "No task waits.");
      const shown =
        answer.total > answer.tasks.length
          ? `The first ${number(answer.tasks.length)} of ${count(answer.total, "task")}`
          : count(answer.total, "task");
      return [
        h("p", { class: "quiet" }, `${shown}, in the order of the queue.`),
        table({
          caption: "Waiting tasks in the order of the queue",
          columns: COLUMNS,
          cards: true,
          rows: answer.tasks.map(row),
        }),
      ];
    },
  });
}

// Jobs through the queue BullMQ, whose events are a stream, against the server whose port is the
// argument. Ends with "done".
'use strict';
const assert = require('assert');
const { FlowProducer, Queue, QueueEvents, Worker, UnrecoverableError } = require('bullmq');

const connection = { port: Number(process.argv[2]) };
const opened = [];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function open(kind, ...options) {
  const one = new kind(...options);
  one.on('error', (error) => {
    console.error(error);
    process.exit(1);
  });
  opened.push(one);
  return one;
}

const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

async function until(what, condition) {
  for (let i = 0; i < 3000; i++) {
    if (await condition()) return;
    await sleep(10);
  }
  assert.fail(`not in time: ${what}`);
}

async function listen(name, kinds) {
  const events = open(QueueEvents, name, { connection });
  const heard = Object.fromEntries(kinds.map((kind) => [kind, []]));
  for (const kind of kinds) events.on(kind, (event) => heard[kind].push(event));
  await events.waitUntilReady();
  return { events, heard };
}

async function addJobs(queue) {
  for (const i of numbers(0, 60)) await queue.add('plain', { i });
  await queue.addBulk(numbers(60, 100).map(
    (i) => ({ name: 'urgent', data: { i }, opts: { priority: 1 + i % 5 } })));
  await queue.add('again', { i: 100, fails: 2 }, { attempts: 3, backoff: 20 });
  await queue.add('fails', { i: 101, fails: 9 },
    { attempts: 2, backoff: { type: 'exponential', delay: 20 } });
  await queue.add('later', { i: 102 }, { delay: 200 });
  await queue.add('once', { i: 103 }, { jobId: 'only once' });
  await queue.add('once', { i: 103 }, { jobId: 'only once' });
  await queue.add('hopeless', { i: 104, hopeless: true }, { attempts: 5 });
}

async function doJob(job) {
  await job.updateProgress(50);
  if (job.data.hopeless) throw new UnrecoverableError('never');
  if (job.attemptsMade < (job.data.fails || 0)) throw new Error(`try ${job.attemptsMade}`);
  await job.log(`job ${job.data.i}`);
  return job.data.i;
}

// All of them are done once, those that fail are tried again, and who reads the stream hears of it.
async function work() {
  const queue = open(Queue, 'work', { connection });
  const { events, heard } = await listen('work',
    ['added', 'active', 'completed', 'failed', 'progress', 'delayed', 'duplicated', 'retries-exhausted']);
  await addJobs(queue);
  assert.strictEqual((await queue.getJobCounts('delayed')).delayed, 1);
  for (let i = 0; i < 3; i++) open(Worker, 'work', doJob, { connection, concurrency: 3 });
  await until('all jobs', () => heard.completed.length + heard.failed.length === 105);
  assert.deepStrictEqual(heard.completed.map((event) => Number(event.returnvalue)).sort((a, b) => a - b),
    numbers(0, 101).concat(102, 103));
  assert.deepStrictEqual(heard.failed.map((event) => event.failedReason).sort(), ['never', 'try 1']);
  assert.strictEqual(heard.progress.length, 108);
  assert.strictEqual(heard.active.length, 108);
  assert.strictEqual(heard.duplicated[0].jobId, 'only once');
  await until('the last word', () => heard['retries-exhausted'].length === 1);
  const counts = await queue.getJobCounts('completed', 'failed', 'active', 'waiting', 'delayed', 'prioritized');
  assert.deepStrictEqual(counts, { completed: 103, failed: 2, active: 0, waiting: 0, delayed: 0, prioritized: 0, paused: 0 });
  const failed = (await queue.getFailed()).find((job) => job.data.i === 101);
  assert.deepStrictEqual([failed.attemptsMade, failed.failedReason], [2, 'try 1']);
  assert.deepStrictEqual((await queue.getJobLogs('only once')).logs, ['job 103']);
  return { queue, events };
}

async function manage({ queue, events }) {
  await queue.pause();
  const job = await queue.add('paused', { i: 200 });
  assert.strictEqual((await queue.getJobCounts('paused')).paused, 1);
  await queue.resume();
  assert.strictEqual(await job.waitUntilFinished(events), 200);
  const later = await queue.add('later', { i: 201 }, { delay: 1e6 });
  await later.promote();
  assert.strictEqual(await later.waitUntilFinished(events), 201);
  const never = await queue.add('never', { i: 202 }, { delay: 1e6 });
  await never.remove();
  assert.strictEqual(await queue.getJob(never.id), undefined);
  await queue.upsertJobScheduler('yearly', { pattern: '0 0 1 1 *' }, { name: 'new year' });
  assert.strictEqual((await queue.getJobSchedulers()).length, 1);
  assert.strictEqual(await queue.removeJobScheduler('yearly'), true);
  assert.strictEqual((await queue.clean(0, 1000, 'completed')).length, 105);
  assert.strictEqual((await queue.clean(0, 1000, 'failed')).length, 2);
  assert.ok(await queue.trimEvents(10) > 0);
  const left = await (await queue.client).xlen(queue.keys.events);
  assert.ok(left >= 10 && left < 200, `${left} events`); // whole nodes of 100 go
}

// A parent waits for its children, and has what they returned.
async function flow() {
  const { events } = await listen('parents', ['completed', 'waiting-children']);
  open(Worker, 'children', async (job) => job.data.i * 2, { connection });
  open(Worker, 'parents', async (job) =>
    Object.values(await job.getChildrenValues()).reduce((sum, i) => sum + i, 0), { connection });
  const producer = open(FlowProducer, { connection });
  const { job } = await producer.add({
    name: 'sum', queueName: 'parents',
    children: numbers(1, 11).map((i) => ({ name: 'double', queueName: 'children', data: { i } })),
  });
  assert.strictEqual(await job.waitUntilFinished(events), 110);
}

// Four a moment; and a job whose worker says nothing any more is somebody else's.
async function limitsAndStalls() {
  const limited = open(Queue, 'limited', { connection });
  const stalled = open(Queue, 'stalled', { connection });
  const { heard } = await listen('stalled', ['stalled', 'completed']);
  const begin = Date.now();
  let count = 0, runs = 0;
  await limited.addBulk(numbers(0, 10).map((i) => ({ name: 'one of ten', data: { i } })));
  open(Worker, 'limited', async () => { count++; }, { connection, limiter: { max: 4, duration: 300 } });
  await until('limited jobs', () => count === 10);
  assert.ok(Date.now() - begin >= 500);
  const options = {
    connection, concurrency: 2, stalledInterval: 150, maxStalledCount: 100, lockDuration: 100, lockRenewTime: 1e6,
  };
  const worker = new Worker('stalled', async () => { if (++runs === 1) await sleep(1000); }, options);
  worker.on('error', () => {}); // the first run's, when it comes back
  await stalled.add('lost', {});
  await until('the stalled job', () => runs >= 2 && heard.completed.length === 1);
  assert.ok(heard.stalled.length >= 1);
  opened.push(worker);
}

async function main() {
  await manage(await work());
  await flow();
  await limitsAndStalls();
  for (const one of opened.reverse()) await one.close(true);
  console.log('done');
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

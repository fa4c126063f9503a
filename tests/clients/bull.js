// Jobs through the queue Bull, against the server whose port is the argument. Ends with "done".
'use strict';
const assert = require('assert');
const Queue = require('bull');

const port = Number(process.argv[2]);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const open = (name, options) => new Queue(name, { redis: { port }, ...options });

async function until(what, condition) {
  for (let i = 0; i < 3000; i++) {
    if (await condition()) return;
    await sleep(10);
  }
  assert.fail(`not in time: ${what}`);
}

// All of them are done once, those that fail are tried again, and everybody hears of it.
async function work() {
  const queue = open('work');
  const heard = { completed: 0, failed: 0, progress: 0 };
  for (const event of Object.keys(heard)) queue.on(`global:${event}`, () => heard[event]++);
  const done = [], failed = [];
  queue.on('completed', (job, result) => done.push(result));
  queue.on('failed', (job, error) => failed.push(`${job.data.i} ${error.message}`));
  await queue.isReady();
  for (let i = 0; i < 60; i++) await queue.add({ i });
  await queue.addBulk(Array.from({ length: 40 }, (_, i) => ({ data: { i: 60 + i }, opts: { priority: 1 + i % 5 } })));
  await queue.add({ i: 100, fails: 2 }, { attempts: 3, backoff: 20 });
  await queue.add({ i: 101, fails: 9 }, { attempts: 2, backoff: { type: 'exponential', delay: 20 } });
  await queue.add({ i: 102 }, { delay: 200 });
  await queue.add({ i: 103 }, { jobId: 'only once' });
  await queue.add({ i: 103 }, { jobId: 'only once' });
  assert.strictEqual((await queue.getJobCounts()).delayed, 1);
  queue.process(3, async (job) => {
    await job.progress(50);
    if (job.attemptsMade < (job.data.fails || 0)) throw new Error(`try ${job.attemptsMade}`);
    await job.log(`job ${job.data.i}`);
    return job.data.i;
  });
  await until('all jobs', () => done.length + failed.length === 107);
  assert.deepStrictEqual(done.sort((a, b) => a - b),
    Array.from({ length: 104 }, (_, i) => i).filter((i) => i !== 101));
  assert.deepStrictEqual(failed.sort(), ['100 try 0', '100 try 1', '101 try 0', '101 try 1']);
  await until('messages', () => heard.completed === 103 && heard.failed === 1 && heard.progress === 107);
  assert.deepStrictEqual(await queue.getJobCounts(),
    { waiting: 0, active: 0, completed: 103, failed: 1, delayed: 0, paused: 0 });
  const [last] = await queue.getFailed();
  assert.deepStrictEqual([last.data.i, last.attemptsMade, last.failedReason], [101, 2, 'try 1']);
  assert.deepStrictEqual((await queue.getJobLogs('only once')).logs, ['job 103']);
  return queue;
}

async function manage(queue) {
  await queue.pause();
  const job = await queue.add({ i: 200 });
  assert.strictEqual((await queue.getJobCounts()).paused, 1);
  await queue.resume();
  assert.strictEqual(await job.finished(), 200);
  const later = await queue.add({ i: 201 }, { delay: 1e6 });
  await later.promote();
  assert.strictEqual(await later.finished(), 201);
  const never = await queue.add({ i: 202 }, { delay: 1e6 });
  await never.remove();
  assert.strictEqual(await queue.getJob(never.id), null);
  await queue.add({ i: 203 }, { repeat: { cron: '0 0 1 1 *' } });
  assert.strictEqual((await queue.getRepeatableJobs()).length, 1);
  await queue.removeRepeatable({ cron: '0 0 1 1 *' });
  assert.strictEqual((await queue.clean(0, 'completed')).length, 105);
  assert.strictEqual((await queue.clean(0, 'failed')).length, 1);
}

// Four a moment, whoever asks; and a job whose worker says nothing any more is somebody else's.
async function limitsAndStalls() {
  const limited = open('limited', { limiter: { max: 4, duration: 300 } });
  let count = 0;
  const begin = Date.now();
  for (let i = 0; i < 10; i++) await limited.add({ i });
  limited.process(async () => { count++; });
  const stalled = open('stalled', {
    settings: { stalledInterval: 150, lockDuration: 100, lockRenewTime: 1e6 },
  });
  stalled.on('error', () => {}); // the first worker's, when it comes back
  let runs = 0;
  stalled.process(2, async () => { if (++runs === 1) await sleep(1000); });
  await stalled.add({});
  await until('the stalled job', () => runs >= 2);
  await until('limited jobs', () => count === 10);
  assert.ok(Date.now() - begin >= 500);
  await Promise.all([limited.close(true), stalled.close(true)]);
}

async function main() {
  const queue = await work();
  await manage(queue);
  await limitsAndStalls();
  await queue.close(true);
  console.log('done');
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

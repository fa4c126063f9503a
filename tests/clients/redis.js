// A day's work through redis for node (RESP2 or 3, the second argument), against the server whose
// port is the first. Ends with "done".
'use strict';
const assert = require('assert');
const { BasicClientSideCache, createClient, defineScript, WatchError } = require('redis');

const port = Number(process.argv[2]);
const RESP = Number(process.argv[3]);

const take = defineScript({
  NUMBER_OF_KEYS: 1,
  SCRIPT: `local left = tonumber(redis.call('GET', KEYS[1]) or '0')
           if left < tonumber(ARGV[1]) then return redis.error_reply('LEFT only ' .. left) end
           return redis.call('DECRBY', KEYS[1], ARGV[1])`,
  parseCommand(parser, key, count) {
    parser.pushKey(key);
    parser.push(String(count));
  },
  transformReply: (reply) => reply,
});

async function connect(options) {
  const client = createClient({ RESP, socket: { port }, scripts: { take }, ...options });
  client.on('error', (error) => {
    throw error;
  });
  return client.connect();
}

async function values(redis) {
  assert.strictEqual(await redis.set('greeting', 'good day', { EX: 100 }), 'OK');
  assert.strictEqual(await redis.get('greeting'), 'good day');
  assert.strictEqual(await redis.set('greeting', 'no', { NX: true }), null);
  await redis.hSet('user:1', { name: 'Ada', visits: '1' });
  assert.strictEqual(await redis.hIncrBy('user:1', 'visits', 4), 5);
  assert.deepEqual({ ...(await redis.hGetAll('user:1')) }, { name: 'Ada', visits: '5' });
  await redis.zAdd('scores', [{ score: 1.5, value: 'a' }, { score: -2, value: 'b' }]);
  assert.strictEqual(await redis.zScore('scores', 'a'), 1.5);
  assert.deepEqual((await redis.zRangeWithScores('scores', 0, -1)).map((e) => ({ ...e })),
    [{ value: 'b', score: -2 }, { value: 'a', score: 1.5 }]);
  assert.deepStrictEqual(await redis.mGet(['greeting', 'absent']), ['good day', null]);
  await assert.rejects(redis.lPush('user:1', 'x'), /WRONGTYPE/);
  await redis.sAdd('many', Array.from({ length: 3000 }, (_, i) => `member ${i}`));
  const seen = new Set();
  for await (const part of redis.sScanIterator('many', { COUNT: 100 })) {
    part.forEach((member) => seen.add(member));
  }
  assert.strictEqual(seen.size, 3000);
}

async function pipeline(redis) {
  // Whatever is called in one turn of the loop goes out together.
  const sent = Array.from({ length: 1000 }, (_, i) => redis.set(`p:${i}`, `${i}`));
  const got = Array.from({ length: 1000 }, (_, i) => redis.get(`p:${i}`));
  assert.ok((await Promise.all(sent)).every((reply) => reply === 'OK'));
  assert.deepStrictEqual(await Promise.all(got), Array.from({ length: 1000 }, (_, i) => `${i}`));
  const replies = await redis.multi().get('p:7').incr('p:7').execAsPipeline();
  assert.deepStrictEqual(replies, ['7', 8]);
}

async function transaction(redis) {
  assert.deepStrictEqual(await redis.multi().set('t', '1').incrBy('t', 41).exec(), ['OK', 42]);
  const other = await connect();
  await redis.watch('t');
  await other.set('t', 'changed');
  await assert.rejects(redis.multi().set('t', 'lost').exec(), WatchError);
  assert.strictEqual(await redis.get('t'), 'changed');
  await other.close();
}

async function scripts(redis) {
  await redis.scriptFlush(); // the first call finds no script, and sends it
  await redis.set('stock', '10');
  assert.strictEqual(await redis.take('stock', 4), 6);
  await assert.rejects(redis.take('stock', 7), /LEFT only 6/);
  const three = await redis.eval('return {KEYS[1], ARGV[1], #ARGV}',
    { keys: ['k'], arguments: ['a', 'b'] });
  assert.deepStrictEqual(three, ['k', 'a', 2]);
}

async function messages(redis) {
  const subscriber = await connect();
  const got = [];
  let heard;
  const all = new Promise((resolve) => {
    heard = resolve;
  });
  await subscriber.subscribe('news', (text, channel) => got.push([channel, text]));
  await subscriber.pSubscribe('w*r', (text, channel) => {
    got.push([channel, text]);
    heard();
  });
  assert.strictEqual(await redis.publish('news', 'one'), 1);
  await redis.publish('other', 'nobody hears');
  await redis.publish('weather', 'two');
  await all;
  assert.deepStrictEqual(got, [['news', 'one'], ['weather', 'two']]);
  await subscriber.unsubscribe('news');
  await subscriber.pUnsubscribe('w*r');
  assert.strictEqual(String(await subscriber.ping()), 'PONG');
  await subscriber.close();
}

async function queue(redis) {
  const worker = await connect();
  const first = worker.blPop(['jobs', 'urgent'], 10);
  await redis.rPush('jobs', 'job 1');
  assert.deepEqual({ ...(await first) }, { key: 'jobs', element: 'job 1' });
  assert.strictEqual(await worker.blPop('jobs', 0.05), null);
  const moved = worker.blMove('jobs', 'running', 'LEFT', 'RIGHT', 10);
  await redis.rPush('jobs', ['job 2', 'job 3']);
  assert.strictEqual(await moved, 'job 2');
  const lowest = worker.bzPopMin('delayed', 10);
  await redis.zAdd('delayed', { score: 17, value: 'later' });
  assert.deepEqual({ ...(await lowest) }, { key: 'delayed', value: 'later', score: 17 });
  await worker.close();
}

// Two clients with caches of their own, in one program; a counter that both read and change in turns is
// never behind, and is read from the cache in between.
async function caching(redis) {
  if (RESP !== 3) return;
  const caches = [0, 1].map(() => new BasicClientSideCache({ maxEntries: 100, recordStats: true }));
  const clients = [];
  for (const clientSideCache of caches) clients.push(await connect({ clientSideCache }));
  await redis.mSet({ counter: '0', 'hot:1': 'a', 'hot:2': 'b' });
  for (let i = 1; i <= 200; i++) {
    const [writer, reader] = i % 2 ? clients : [...clients].reverse();
    assert.strictEqual(await writer.incr('counter'), i);
    // Its invalidation comes before the reply to what is sent after the reply to INCR.
    await reader.ping();
    assert.strictEqual(await reader.get('counter'), String(i));
    for (let j = 0; j < 3; j++) assert.strictEqual(await reader.get('hot:1'), 'a');
  }
  const stats = caches.map((cache) => cache.stats());
  assert.ok(stats.every(({ hitCount }) => hitCount >= 298), JSON.stringify(stats));
  await redis.flushAll();
  await Promise.all(clients.map((client) => client.ping()));
  assert.deepStrictEqual(await Promise.all(clients.map((client) => client.get('hot:1'))), [null, null]);
  for (const client of clients) await client.close();
}

async function main() {
  const redis = await connect({ name: 'node-redis-test' });
  assert.strictEqual(await redis.clientGetName(), 'node-redis-test');
  for (const work of [values, pipeline, transaction, scripts, messages, queue, caching]) {
    await work(redis);
  }
  await redis.close();
  console.log('done');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

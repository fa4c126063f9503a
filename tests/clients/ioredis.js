// A day's work through ioredis, against the server whose port is the argument. Ends with "done".
'use strict';
const assert = require('assert');
const Redis = require('ioredis');

const port = Number(process.argv[2]);
const connect = (options) => new Redis({ port, maxRetriesPerRequest: 1, ...options });

async function values(redis) {
  assert.strictEqual(await redis.set('greeting', 'good day', 'EX', 100), 'OK');
  assert.strictEqual(await redis.get('greeting'), 'good day');
  assert.ok((await redis.ttl('greeting')) > 90);
  const bytes = Buffer.from([0, 13, 10, 255, 0]);
  await redis.setBuffer('bytes', bytes);
  assert.ok((await redis.getBuffer('bytes')).equals(bytes));
  await redis.hset('user:1', { name: 'Ada', visits: 1 });
  assert.strictEqual(await redis.hincrby('user:1', 'visits', 4), 5);
  assert.deepStrictEqual(await redis.hgetall('user:1'), { name: 'Ada', visits: '5' });
  await redis.zadd('scores', 3, 'c', 1, 'a', 2, 'b');
  assert.deepStrictEqual(await redis.zrange('scores', 0, -1, 'WITHSCORES'),
    ['a', '1', 'b', '2', 'c', '3']);
  await assert.rejects(redis.lpush('user:1', 'x'), /^ReplyError: WRONGTYPE/);
  const seen = new Set();
  await redis.sadd('many', ...Array.from({ length: 3000 }, (_, i) => `member ${i}`));
  for await (const part of redis.sscanStream('many', { count: 100 })) {
    part.forEach((member) => seen.add(member));
  }
  assert.strictEqual(seen.size, 3000);
}

async function pipeline(redis) {
  const batch = redis.pipeline();
  for (let i = 0; i < 1000; i++) batch.set(`p:${i}`, i).incr(`p:${i}`);
  batch.hget('p:0', 'no hash');
  const replies = await batch.exec();
  assert.strictEqual(replies.length, 2001);
  assert.deepStrictEqual(replies[1999], [null, 1000]);
  assert.match(replies[2000][0].message, /^WRONGTYPE/);
  // Whatever is called in one turn of the loop goes out together.
  const auto = connect({ enableAutoPipelining: true });
  const got = await Promise.all(Array.from({ length: 1000 }, (_, i) => auto.get(`p:${i}`)));
  assert.deepStrictEqual(got, Array.from({ length: 1000 }, (_, i) => String(i + 1)));
  await auto.quit();
}

async function transaction(redis) {
  const done = await redis.multi().set('t', 1).incrby('t', 41).get('t').exec();
  assert.deepStrictEqual(done, [[null, 'OK'], [null, 42], [null, '42']]);
  const other = connect();
  await redis.watch('t');
  await other.set('t', 'changed');
  assert.strictEqual(await redis.multi().set('t', 'lost').exec(), null);
  assert.strictEqual(await redis.get('t'), 'changed');
  await assert.rejects(redis.multi().set('t', 1).set('t').exec(), /EXECABORT/);
  await other.quit();
}

async function scripts(redis) {
  redis.defineCommand('take', {
    numberOfKeys: 1,
    lua: `local left = tonumber(redis.call('GET', KEYS[1]) or '0')
          local wanted = tonumber(ARGV[1])
          if left < wanted then return redis.error_reply('LEFT only ' .. left) end
          return redis.call('DECRBY', KEYS[1], wanted)`,
  });
  await redis.script('FLUSH'); // the first call finds no script, and sends it
  await redis.set('stock', 10);
  assert.strictEqual(await redis.take('stock', 4), 6);
  await assert.rejects(redis.take('stock', 7), /LEFT only 6/);
  const replies = await redis.pipeline().take('stock', 1).take('stock', 2).exec();
  assert.deepStrictEqual(replies, [[null, 5], [null, 3]]);
}

async function messages(redis) {
  const subscriber = connect();
  const got = [];
  assert.strictEqual(await subscriber.subscribe('news', 'sport'), 2);
  assert.strictEqual(await subscriber.psubscribe('w*r'), 3);
  const all = new Promise((resolve) => {
    subscriber.on('message', (channel, text) => got.push([channel, text]));
    subscriber.on('pmessage', (pattern, channel, text) => {
      got.push([pattern, channel, text]);
      resolve();
    });
  });
  assert.strictEqual(await redis.publish('news', 'one'), 1);
  await redis.publish('sport', 'two');
  await redis.publish('other', 'nobody hears');
  await redis.publish('weather', 'three');
  await all;
  assert.deepStrictEqual(got, [['news', 'one'], ['sport', 'two'], ['w*r', 'weather', 'three']]);
  await assert.rejects(subscriber.get('greeting'), /subscriber mode/);
  await subscriber.quit();
}

async function queue(redis) {
  const worker = connect();
  const first = worker.blpop('jobs', 'urgent', 10);
  await redis.rpush('jobs', 'job 1');
  assert.deepStrictEqual(await first, ['jobs', 'job 1']);
  assert.strictEqual(await worker.blpop('jobs', 0.05), null);
  const moved = worker.blmove('jobs', 'running', 'LEFT', 'RIGHT', 10);
  await redis.multi().rpush('jobs', 'job 2').rpush('jobs', 'job 3').exec();
  assert.strictEqual(await moved, 'job 2');
  assert.deepStrictEqual(await redis.lrange('running', 0, -1), ['job 2']);
  const lowest = worker.bzpopmin('delayed', 10);
  await redis.zadd('delayed', 17, 'later');
  assert.deepStrictEqual(await lowest, ['delayed', 'later', '17']);
  await worker.quit();
}

async function main() {
  const redis = connect({ connectionName: 'ioredis-test' });
  assert.strictEqual(await redis.client('GETNAME'), 'ioredis-test');
  for (const work of [values, pipeline, transaction, scripts, messages, queue]) await work(redis);
  await redis.quit();
  console.log('done');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

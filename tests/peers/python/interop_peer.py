"""What the interop agents on the Python SDKs have in common, whatever dialect their SDK speaks.

An agent's base URL is /KIND: `open` (streams and pushes), `still` and `quiet` (do not stream), `keyed` (wants the key in
KEY). Its card names the host that it was asked at, so that a proxy in front of it stays in front of it.

What it does is told by the first word of a message:

    quick WORD        answers at once
    ask WORD          asks a question, then answers with what it was told
    mirror WORD       gives every file back with its bytes reversed
    parts WORD        tells the links and data it was given, and gives a link and data back
    fail WORD         fails
    reject WORD       refuses
    slow SECONDS WORD works that long, then answers
    steps COUNT WORD  answers in that many pieces, a while apart
    hold SECONDS WORD as slow, but keeps the caller waiting whatever it asked for
    follow GATE WORD  works until somebody opens the gate (POST /gates/GATE) and a moment longer, then tells a tale
    tale GATE WORD    the same

Variables: PORT is where it listens. With STORE, the path of a database, it keeps its tasks there, by the SDK's own store, and
goes on with those that it was working on when it is started again; its webhooks are in memory all the same. With BREAK it gets
every scenario wrong, each in one point (see ../README.md): a check that stays green on it proves nothing.
"""

import asyncio
import os
import random

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

PORT = int(os.environ['PORT'])
KEY = os.environ.get('KEY', '')
STORE = os.environ.get('STORE', '')
BROKEN = bool(os.environ.get('BREAK'))
KINDS = ('open', 'still', 'quiet', 'keyed')
PAUSE = 0.4
INPUT_MODES = ['text/plain', 'application/octet-stream', 'application/pdf', 'application/json']
SKILL = {'id': 'interop', 'name': 'Interop', 'description': 'Answers, asks, files, waits', 'tags': ['test']}

# The longest moment that a task goes on after its gate was opened, in seconds: all of them at once would be one event.
MOMENT = 1.5
# How long a tale is, in lines.
LINES = 60

gates = {}


def gate(name):
    return gates.setdefault(name, asyncio.Event())


def tale(word):
    return ''.join(f'line {number} of {word}\n' for number in range(1, LINES + 1))


def streams(kind):
    return kind in ('open', 'keyed') or (kind == 'still' and BROKEN)


class Script:
    """What an agent does, told by words. The SDK's executor is put together with it, and says how its SDK builds things:
    `text`, `words_of`, `opening`, `ask`, and what files, links and data are."""

    async def execute(self, context, event_queue):
        if context.current_task is None:
            await event_queue.enqueue_event(self.opening(context))
        task = self.updater(event_queue, context.task_id, context.context_id)
        asked = self.asked(context.current_task)
        said = context.get_user_input()
        if asked is not None:
            # Nothing is said of the task meanwhile: it goes on waiting for input, as far as anybody can tell.
            await asyncio.sleep(1)
            await self.answer(task, f'booked {asked} for {said}')
            return
        verb, _, rest = said.partition(' ')
        act = getattr(self, f'do_{verb}', None)
        if act is None:
            await task.failed(task.new_agent_message(self.text(f'what is {verb}?')))
        else:
            await act(task, rest, context.message.parts)

    async def cancel(self, context, event_queue):
        await self.updater(event_queue, context.task_id, context.context_id).cancel()

    def asked(self, current):
        """The words a question was asked about, when this task waits for an answer."""
        said = self.first_words(current) if current is not None else ''
        return said.removeprefix('ask ') if said.startswith('ask ') else None

    def first_words(self, task):
        return self.words_of(task.history[0]) if task.history else ''

    async def answer(self, task, words):
        await task.add_artifact(self.text(words), artifact_id='response', name='response')
        await task.complete()

    async def do_quick(self, task, word, _):
        await self.answer(task, 'something else' if BROKEN else f'quick: {word}')

    async def do_ask(self, task, word, _):
        if BROKEN:
            await self.answer(task, f'booked {word} for some day')
        else:
            await self.ask(task, f'Which day for {word}?')

    async def do_fail(self, task, word, _):
        if BROKEN:
            await self.answer(task, f'cannot do {word}')
        else:
            await task.failed(task.new_agent_message(self.text(f'cannot do {word}')))

    async def do_reject(self, task, word, _):
        message = task.new_agent_message(self.text(f'will not do {word}'))
        await (task.failed(message) if BROKEN else task.reject(message))

    async def do_slow(self, task, rest, _):
        seconds, _, word = rest.partition(' ')
        await task.start_work()
        await asyncio.sleep(float(seconds))
        await self.answer(task, 'gone' if BROKEN else f'slow: {word}')

    async def do_steps(self, task, rest, _):
        count, _, word = rest.partition(' ')
        steps = [f'step {number} of {word}\n' for number in range(1, int(count) + 1)]
        await task.start_work()
        if BROKEN:
            await asyncio.sleep(PAUSE * len(steps))
            steps = [''.join(steps)]
        for number, step in enumerate(steps):
            await asyncio.sleep(PAUSE)
            last = number + 1 == len(steps)
            await task.add_artifact(
                self.text(step), artifact_id='response', name='response', append=number > 0, last_chunk=last
            )
        await task.complete()

    async def do_hold(self, task, rest, _):
        seconds, _, word = rest.partition(' ')
        await task.start_work()
        await asyncio.sleep(float(seconds))
        await self.answer(task, f'held: {word}')

    async def do_follow(self, task, rest, _):
        await task.start_work()
        await self.answer(task, await self.told('follow', rest))

    async def do_tale(self, task, rest, _):
        await task.start_work()
        await self.answer(task, await self.told('tale', rest))

    async def told(self, verb, rest):
        name, _, word = rest.partition(' ')
        await gate(name).wait()
        await asyncio.sleep(random.uniform(0, MOMENT))
        return tale(word[::-1] if BROKEN and verb == 'tale' else word)

    async def resume(self, task, finish):
        """Goes on with a task that an earlier process worked on; `finish` is called with what came of it."""
        verb, _, rest = self.first_words(task).partition(' ')
        if verb in ('follow', 'tale'):
            await finish(task, await self.told(verb, rest))

    async def without_its_end(self, task, events, is_end):
        """A stream; broken, that of a task that is followed ends before it tells of the end."""
        cut = BROKEN and task is not None and self.first_words(task).startswith('follow ')
        async for event in events:
            if cut and is_end(event):
                return
            yield event


class KeyCheck:
    """Lets nobody without the key to the agent that wants one; its card is open."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        path = scope.get('path', '')
        if path.startswith('/keyed/') and '/.well-known/' not in path and not BROKEN:
            given = dict(scope['headers']).get(b'x-api-key', b'').decode()
            if given != KEY:
                await JSONResponse({'error': 'wrong key'}, status_code=401)(scope, receive, send)
                return
        await self.app(scope, receive, send)


async def open_gate(request):
    gate(request.path_params['name']).set()
    return Response(status_code=204)


class Stored:
    """Tasks in a database, by the store of the SDK: one table per kind of card."""

    def __init__(self):
        from sqlalchemy.ext.asyncio import create_async_engine

        self.engine = create_async_engine(f'sqlite+aiosqlite:///{STORE}', connect_args={'timeout': 30})
        self.stores = []

    def tasks(self, kind, script, finish):
        from a2a.server.tasks import DatabaseTaskStore

        store = DatabaseTaskStore(self.engine, table_name=f'tasks_{kind}')
        self.stores.append((store, script, finish))
        return store

    async def resume_all(self):
        from sqlalchemy import select

        for store, script, finish in self.stores:
            await store.initialize()
            async with store.async_session_maker() as session:
                rows = (await session.execute(select(store.task_model))).scalars().all()
                left = [store._from_orm(row) for row in rows]
            for task in left:
                running.add(asyncio.create_task(script.resume(task, finish(store))))


running = set()


def serve(routes, stored):
    """Serves the agents until the process ends."""

    async def begin():
        if stored is not None:
            await stored.resume_all()
        application = KeyCheck(Starlette(routes=[*routes, Route('/gates/{name}', open_gate, methods=['POST'])]))
        config = uvicorn.Config(application, host='127.0.0.1', port=PORT, log_level='warning', access_log=False)
        await uvicorn.Server(config).serve()

    asyncio.run(begin())

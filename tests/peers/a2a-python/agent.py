"""The interop agent on a2a-python 1.3: JSON-RPC and HTTP+JSON, one agent per kind of card.

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

PORT is where it listens. With BREAK it gets every scenario wrong, each in one point (see ../README.md): a check that
stays green on it proves nothing.
"""

import asyncio
import os

import httpx
import uvicorn
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    APIKeySecurityScheme,
    Part,
    SecurityRequirement,
    SecurityScheme,
    StringList,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

PORT = int(os.environ['PORT'])
KEY = os.environ.get('KEY', '')
BROKEN = bool(os.environ.get('BREAK'))
KINDS = ('open', 'still', 'quiet', 'keyed')
PAUSE = 0.4
INPUT_MODES = ['text/plain', 'application/octet-stream', 'application/pdf', 'application/json']


def text(words):
    return [Part(text=words)]


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        if context.current_task is None:
            await event_queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                    history=[context.message],
                )
            )
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
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
            await task.failed(task.new_agent_message(text(f'what is {verb}?')))
        else:
            await act(task, rest, context.message.parts)

    async def do_quick(self, task, word, _):
        await self.answer(task, 'something else' if BROKEN else f'quick: {word}')

    async def do_ask(self, task, word, _):
        if BROKEN:
            await self.answer(task, f'booked {word} for some day')
        else:
            await task.requires_input(task.new_agent_message(text(f'Which day for {word}?')))

    async def do_mirror(self, task, word, given):
        files = [part for part in given if part.HasField('raw')]
        for number, part in enumerate(files):
            raw = b'not what was asked' if BROKEN else part.raw[::-1]
            back = Part(raw=raw, media_type=part.media_type, filename=f'mirrored-{part.filename}')
            await task.add_artifact([back], artifact_id=f'file-{number}')
        await self.answer(task, f'mirrored {len(files)} for {word}')

    async def do_parts(self, task, word, given):
        links = [part.url for part in given if part.HasField('url')]
        data = [MessageToDict(part.data)['word'] for part in given if part.HasField('data')]
        told = ' and '.join(links + data) or 'nothing'
        back = ParseDict({'back': 'lost' if BROKEN else word}, Value())
        link = 'https://files.example/lost.pdf' if BROKEN else f'https://files.example/{word}.pdf'
        parts = [
            Part(text=f'given {told}\n'),
            Part(data=back),
            Part(url=link, media_type='application/pdf', filename=f'{word}.pdf'),
        ]
        await task.add_artifact(parts, artifact_id='response', name='response')
        await task.complete()

    async def do_fail(self, task, word, _):
        if BROKEN:
            await self.answer(task, f'cannot do {word}')
        else:
            await task.failed(task.new_agent_message(text(f'cannot do {word}')))

    async def do_reject(self, task, word, _):
        message = task.new_agent_message(text(f'will not do {word}'))
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
                text(step), artifact_id='response', name='response', append=number > 0, last_chunk=last
            )
        await task.complete()

    async def do_hold(self, task, rest, _):
        seconds, _, word = rest.partition(' ')
        await task.start_work()
        await asyncio.sleep(float(seconds))
        await self.answer(task, f'held: {word}')

    @staticmethod
    def asked(current):
        """The words a question was asked about, when this task waits for an answer."""
        if current is None:
            return None
        for message in current.history:
            words = ' '.join(part.text for part in message.parts)
            if words.startswith('ask '):
                return words.removeprefix('ask ')
        return None

    @staticmethod
    async def answer(task, words):
        await task.add_artifact(text(words), artifact_id='response', name='response')
        await task.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Handler(DefaultRequestHandler):
    """The SDK's handler with what no executor can do: deviations that agents in the wild have."""

    async def on_message_send(self, params, context):
        words = params.message.parts[0].text if params.message.parts else ''
        if words.startswith('hold ') and not BROKEN:
            params.configuration.return_immediately = False
        return await super().on_message_send(params, context)

    async def on_cancel_task(self, params, context):
        if BROKEN:
            return await self.task_store.get(params.id, context)
        return await super().on_cancel_task(params, context)

    async def on_list_tasks(self, params, context):
        page = await super().on_list_tasks(params, context)
        if BROKEN:
            del page.tasks[1:]
        return page

    async def on_delete_task_push_notification_config(self, params, context):
        if not BROKEN:
            await super().on_delete_task_push_notification_config(params, context)


def streams(kind):
    return kind in ('open', 'keyed') or (kind == 'still' and BROKEN)


def card_of(kind, base):
    keyed = {}
    if kind == 'keyed':
        scheme = APIKeySecurityScheme(location='header', name='X-API-Key')
        keyed = {
            'security_schemes': {'key': SecurityScheme(api_key_security_scheme=scheme)},
            'security_requirements': [SecurityRequirement(schemes={'key': StringList()})],
        }
    skill = AgentSkill(id='interop', name='Interop', description='Answers, asks, files, waits', tags=['test'])
    return AgentCard(
        name='python peer',
        description='Interop agent on the official Python SDK',
        version='1.0.0',
        supported_interfaces=[
            AgentInterface(url=f'{base}/{kind}/rpc', protocol_binding='JSONRPC', protocol_version='1.0'),
            AgentInterface(url=f'{base}/{kind}/rest', protocol_binding='HTTP+JSON', protocol_version='1.0'),
        ],
        capabilities=AgentCapabilities(streaming=streams(kind), push_notifications=True),
        default_input_modes=INPUT_MODES,
        default_output_modes=['text/plain'],
        skills=[] if BROKEN else [skill],
        **keyed,
    )


def agent(kind):
    async def card(request):
        route = create_agent_card_routes(agent_card=card_of(kind, f'http://{request.headers["host"]}'))[0]
        return await route.endpoint(request)

    configs = InMemoryPushNotificationConfigStore()
    sender = {} if BROKEN else {'push_sender': BasePushNotificationSender(httpx.AsyncClient(), configs)}
    handler = Handler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        agent_card=card_of(kind, f'http://127.0.0.1:{PORT}'),
        push_config_store=configs,
        **sender,
    )
    return [
        Route(f'/{kind}/.well-known/agent-card.json', card, methods=['GET']),
        *create_jsonrpc_routes(request_handler=handler, rpc_url=f'/{kind}/rpc'),
        Mount(f'/{kind}/rest', routes=create_rest_routes(request_handler=handler)),
    ]


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


def app():
    return KeyCheck(Starlette(routes=[route for kind in KINDS for route in agent(kind)]))


if __name__ == '__main__':
    uvicorn.run(app(), host='127.0.0.1', port=PORT, log_level='warning', access_log=False)

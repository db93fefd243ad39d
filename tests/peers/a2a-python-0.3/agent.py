"""The interop agent on a2a-python 0.3.26, the last line that speaks A2A 0.3 alone: JSON-RPC.

The same kinds of card, scenarios and variables as ../a2a-python/agent.py; that file says what each does.
"""

import asyncio
import base64
import os

import httpx
import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    APIKeySecurityScheme,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    In,
    MessageSendConfiguration,
    Part,
    SecurityScheme,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
)
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

PORT = int(os.environ['PORT'])
KEY = os.environ.get('KEY', '')
BROKEN = bool(os.environ.get('BREAK'))
KINDS = ('open', 'still', 'quiet', 'keyed')
PAUSE = 0.4
INPUT_MODES = ['text/plain', 'application/octet-stream', 'application/pdf', 'application/json']


def text(words):
    return [Part(root=TextPart(text=words))]


def words_of(message):
    return ' '.join(part.root.text for part in message.parts if isinstance(part.root, TextPart))


def files_of(parts, form):
    return [part.root.file for part in parts if isinstance(part.root, FilePart) and isinstance(part.root.file, form)]


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        if context.current_task is None:
            await event_queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.submitted),
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
            await task.requires_input(task.new_agent_message(text(f'Which day for {word}?')), final=True)

    async def do_mirror(self, task, word, given):
        files = files_of(given, FileWithBytes)
        for number, file in enumerate(files):
            raw = b'not what was asked' if BROKEN else base64.b64decode(file.bytes)[::-1]
            back = FileWithBytes(
                bytes=base64.b64encode(raw).decode(), mime_type=file.mime_type, name=f'mirrored-{file.name}'
            )
            await task.add_artifact([Part(root=FilePart(file=back))], artifact_id=f'file-{number}')
        await self.answer(task, f'mirrored {len(files)} for {word}')

    async def do_parts(self, task, word, given):
        links = [file.uri for file in files_of(given, FileWithUri)]
        data = [part.root.data['word'] for part in given if isinstance(part.root, DataPart)]
        told = ' and '.join(links + data) or 'nothing'
        link = 'https://files.example/lost.pdf' if BROKEN else f'https://files.example/{word}.pdf'
        parts = [
            *text(f'given {told}\n'),
            Part(root=DataPart(data={'back': 'lost' if BROKEN else word})),
            Part(root=FilePart(file=FileWithUri(uri=link, mime_type='application/pdf', name=f'{word}.pdf'))),
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
        for message in current.history or []:
            words = words_of(message)
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

    async def on_message_send(self, params, context=None):
        if words_of(params.message).startswith('hold ') and not BROKEN:
            params.configuration = params.configuration or MessageSendConfiguration()
            params.configuration.blocking = True
        return await super().on_message_send(params, context)

    async def on_cancel_task(self, params, context=None):
        if BROKEN:
            return await self.task_store.get(params.id, context)
        return await super().on_cancel_task(params, context)

    async def on_delete_task_push_notification_config(self, params, context=None):
        if not BROKEN:
            await super().on_delete_task_push_notification_config(params, context)


def streams(kind):
    return kind in ('open', 'keyed') or (kind == 'still' and BROKEN)


def card_of(kind, base):
    keyed = {}
    if kind == 'keyed':
        scheme = SecurityScheme(root=APIKeySecurityScheme(in_=In.header, name='X-API-Key'))
        keyed = {'security_schemes': {'key': scheme}, 'security': [{'key': []}]}
    skill = AgentSkill(id='interop', name='Interop', description='Answers, asks, files, waits', tags=['test'])
    return AgentCard(
        name='python 0.3 peer',
        description='Interop agent on the official Python SDK of A2A 0.3',
        version='1.0.0',
        url=f'{base}/{kind}/rpc',
        capabilities=AgentCapabilities(streaming=streams(kind), push_notifications=True),
        default_input_modes=INPUT_MODES,
        default_output_modes=['text/plain'],
        skills=[] if BROKEN else [skill],
        **keyed,
    )


def agent(kind):
    configs = InMemoryPushNotificationConfigStore()
    sender = None if BROKEN else BasePushNotificationSender(httpx.AsyncClient(), configs)
    handler = Handler(
        agent_executor=Agent(), task_store=InMemoryTaskStore(), push_config_store=configs, push_sender=sender
    )
    card_url, rpc_url = f'/{kind}/.well-known/agent-card.json', f'/{kind}/rpc'

    def routes(base):
        application = A2AStarletteApplication(agent_card=card_of(kind, base), http_handler=handler)
        rpc, card = application.routes(agent_card_url=card_url, rpc_url=rpc_url)
        return rpc, card

    async def card(request):
        _, route = routes(f'http://{request.headers["host"]}')
        return await route.endpoint(request)

    rpc, _ = routes(f'http://127.0.0.1:{PORT}')
    return [rpc, Route(card_url, card, methods=['GET'])]


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

/* serve_host.c - a program of this machine that serves a model over TCP, as firmware would over a UART: prints its port,
 * and talks to one host after the other. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "SERVE_H"

static int connection;

static int get(void *stream)
{
    uint8_t byte;
    (void)stream;
    return recv(connection, &byte, 1, 0) == 1 ? byte : -1;
}

static void put(void *stream, const uint8_t *bytes, size_t count)
{
    (void)stream;
    if (send(connection, bytes, count, MSG_NOSIGNAL) < 0) shutdown(connection, SHUT_RDWR);
}

#ifdef UPDATES
static uint64_t room[UPDATES / 8u + 1u];

static mcc_status store(uint32_t offset, const uint8_t *bytes, size_t count)
{
    memcpy((uint8_t *)room + offset, bytes, count);
    return MCC_OK;
}
#endif

int main(void)
{
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    memset(&own, 0, sizeof own);
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listening, (struct sockaddr *)&own, sizeof own) != 0 || listen(listening, 1) != 0) return 1;
    if (getsockname(listening, (struct sockaddr *)&own, &size) != 0) return 1;
    printf("%d\n", ntohs(own.sin_port));
    fflush(stdout);
#ifdef UPDATES
    SERVE_UPDATES(room, store);
#endif
    while ((connection = accept(listening, NULL, NULL)) >= 0) {
        SERVE(get, put, NULL);
        close(connection);
    }
    return 0;
}

# Cache::Memcached::Fast, with Storable and compression.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cache::Memcached::Fast;
use Contract;

Contract::main(
    'Cache::Memcached::Fast',
    Cache::Memcached::Fast->VERSION,
    sub {
        my ( $host, $port, $timeout ) = @_;
        my $m = Cache::Memcached::Fast->new(
            {
                servers            => ["$host:$port"],
                compress_threshold => 1000,
                connect_timeout    => $timeout,
                io_timeout         => $timeout
            }
        );
        return {
            set       => sub { $m->set(@_) },
            get       => sub { $m->get(@_) },
            delete    => sub { $m->delete(@_) },
            get_multi => sub { $m->get_multi(@_) },
            add       => sub { $m->add(@_) },
            replace   => sub { $m->replace(@_) },
            append    => sub { $m->append(@_) },
            prepend   => sub { $m->prepend(@_) },
            gets      => sub { $m->gets(@_) },
            cas       => sub { $m->cas(@_) },
            incr      => sub { $m->incr(@_) },
            decr      => sub { $m->decr(@_) },
            touch     => sub { $m->touch(@_) },
            gat       => sub { my ( $key, $ttl ) = @_; $m->gat( $ttl, $key ) },
        };
    }
);
